"""Tests of the simulated devices; they know nothing of the gateway."""
