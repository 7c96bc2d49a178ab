"""HTA's import path `hta.common`."""
