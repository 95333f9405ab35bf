"""A small brewery made up for trying the gateway: recipes, brew sessions, readings, photos."""
