"""The gateway as a service of systemd: its files, where they go, and what to run.

Everything here is a value: `gateway/cli/install_service.py` writes the files and runs the commands.
"""
