"""The commands of `protege`, a file for each family; what is heavy is imported inside the command that needs it."""
