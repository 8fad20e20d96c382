"""The printed values as tests, and readable assertions of the battery."""

pytest_plugins = ["suite.commands.pytest_plugin"]
