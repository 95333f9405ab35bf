"""Other systems that we speak to, one a file or folder."""
