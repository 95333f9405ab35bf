"""One module a page: functions that call services and give a template its values."""
