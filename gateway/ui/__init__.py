"""Pages for people, below `/ui`: HTML that the server makes. Views call services, and nothing else."""
