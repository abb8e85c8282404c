"""Jobs and incidents over HTTP. Views check the body, call one service, and show the row."""
