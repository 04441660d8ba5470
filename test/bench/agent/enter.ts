// Has agent/node.ts run in a room, with the words that it is given.
import { argv, exit } from 'node:process'
import { fileURLToPath } from 'node:url'
import { enterRoom } from '../../nodes/enter.ts'

exit(await enterRoom(fileURLToPath(new URL('node.ts', import.meta.url)), argv.slice(2)))
