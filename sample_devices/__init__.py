"""Simulated fermentation hydrometers that report byte for byte as the real firmware does."""
