"""The channel of paired machines: frames in both directions over plain HTTPS, none lost, none taken twice."""
