"""Alarms: rules look at figures, states are kept, and messages are sent until they are taken."""
