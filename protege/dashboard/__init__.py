"""The page: run folders to look at, games to watch and to play."""
