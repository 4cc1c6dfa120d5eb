"""The layers that rules put in place of others. They are plain modules: they train, copy and pickle without modelstat's help."""
