"""Arrays and matrices, and the memory behind them."""
