"""The HTTP layer: endpoints as rows, their checks and description, limits on connections."""
