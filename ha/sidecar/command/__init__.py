"""The command of a sidecar: its runs, its guard, its engine, its environment, and what a successor takes over."""
