"""Figures of the real program, each against a ceiling that is measured in the same run."""
