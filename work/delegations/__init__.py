"""Delegations: work that is done by an agent on its owner's own machine."""
