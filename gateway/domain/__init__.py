"""The gateway's own vocabulary: plain values, no I/O."""
