"""Shipped recipes, one TOML file each: ``heedful recipes`` lists them, ``heedful train NAME`` runs one."""
