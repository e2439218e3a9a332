package onceward

// Version is that of this module: the user agent of a client's calls has it.
const Version = "0.1.0"
