"""The web page of the incident log: what people see, say and decide in a browser."""
