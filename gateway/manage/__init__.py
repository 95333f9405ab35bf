"""What the specification does not offer: health, and what the command line needs of a running gateway."""
