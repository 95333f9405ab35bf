"""Faults on purpose, and a judge that says whether the gateway kept what it promises."""
