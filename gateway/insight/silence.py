"""How long a device may be silent."""

INTERVALS = 2.1
"""Intervals after which a device is silent."""

SILENT_MIN_S = 10 * 60
"""Seconds that a device is never silent before."""

GAPS = 3.0
"""Usual gaps after which a device is silent whose interval nobody knows."""

UNKNOWN_S = (30 * 60, 24 * 3600)
"""The least and the most seconds for such a device."""


USUAL_GAP_S = 20 * 60
"""Seconds between two readings of a device of which nobody knows more."""


def silent_after_s(interval_s: int | None, usual_gap_s: float | None = None) -> float:
    """Return the seconds after its last reading from which a device is silent."""
    if interval_s:
        return max(INTERVALS * interval_s, SILENT_MIN_S)
    least, most = UNKNOWN_S
    return min(max(GAPS * (usual_gap_s or USUAL_GAP_S), least), most)
