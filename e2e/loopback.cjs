// Loaded before GitHub's emulator, which would listen on every interface: what
// the tests start is reachable from this machine alone.
const net = require('node:net')
const listen = net.Server.prototype.listen
net.Server.prototype.listen = function (first, ...rest) {
  if (first !== null && typeof first === 'object') return listen.call(this, { ...first, host: '127.0.0.1' }, ...rest)
  return listen.call(this, { port: first, host: '127.0.0.1' }, ...rest.filter((a) => typeof a === 'function'))
}
