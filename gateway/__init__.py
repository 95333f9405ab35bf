"""Takes readings from fermentation hydrometers, keeps them, and sends them to a Brewing Data Service."""

__version__ = "0.2.0"
