"""The live pages of a competition: its leaderboard, each team's own, and the organiser's."""
