"""A made-up small brewery for trying the gateway: recipes, brew sessions, readings, photos."""
