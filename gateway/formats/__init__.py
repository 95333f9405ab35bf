"""File formats, pure: text to values and back."""
