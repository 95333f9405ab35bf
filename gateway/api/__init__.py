"""The Brewing Data Service API under `/v1`: exactly the specification, one module per resource."""
