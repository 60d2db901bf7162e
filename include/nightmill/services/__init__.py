"""Connections, accounts and services that stages and commands use."""
