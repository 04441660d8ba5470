// How Node runs what is small and mostly waits: interpreted. V8's compilers are some megabytes of the program's own pages, which stay resident once they have run,
// and an agent that beats once a second never gives that back in time. Regular expressions are compiled all the same: mount tables are read by them.
export const nodeFlags = ['--no-opt', '--no-maglev', '--no-sparkplug'] as const
