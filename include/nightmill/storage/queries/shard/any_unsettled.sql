select exists ({unsettled})
