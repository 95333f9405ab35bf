"""The figures of a fermentation, made of readings alone: no clock, no store, no packages."""
