"""Deployment: one container a party."""
