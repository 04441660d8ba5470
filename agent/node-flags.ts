// How Node runs what is small and mostly waits: for size, and interpreted. V8's compilers are some megabytes of the program's own pages, which stay resident once they
// have run, and a heap that grew for one look at a full node's mount tables is not given back by a process that then hardly allocates. Regular expressions are
// compiled all the same: the tables are read by them.
export const nodeFlags = ['--no-opt', '--no-maglev', '--no-sparkplug', '--optimize-for-size'] as const
