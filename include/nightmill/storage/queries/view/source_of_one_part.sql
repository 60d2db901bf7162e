{rows} as rows
