"""One module per device family: a point of the curve in, the bytes on the wire out."""
