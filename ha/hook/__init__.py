"""Hook: what a driver's Python loads before its program, where ``ha run`` puts a copy of this folder: ``ha_hook``.

The files use the standard library alone, and Python 3.8; they import each other from ``.``.
"""
