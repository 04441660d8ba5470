// instance-metadata.ts ID: the metadata service of EC2, so far as fence_aws wants to know which instance it runs on; it stops
// nothing before. In a network namespace of its own, at the address where EC2 has it.
import { createServer } from 'node:http'
import { argv } from 'node:process'

createServer((request, response) => {
  request.resume()
  response.end(request.method === 'PUT' ? 'token' : argv[2])
}).listen(80, '169.254.169.254')
