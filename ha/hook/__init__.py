"""Hook: files that a driver's Python loads before the program. They import nothing of this package."""
