// Takes the stage's values and hands their items on, unpacked and in order.

import { language, t } from './words.js';

// One run's items: lines of JSON in one zlib stream that arrives in parts; an empty line ends each part.
class ItemStream {
  constructor(receive) {
    const pipe = new DecompressionStream('deflate');
    Object.assign(this, { receive, tape: [], ends: [], rest: '', decoder: new TextDecoder() });
    this.writer = pipe.writable.getWriter();
    this.read(pipe.readable.getReader()).catch((error) => this.ends.splice(0).forEach((end) => end.reject(error)));
  }

  // Resolves when the items of this part were received.
  push(part) {
    this.tape.push(part);
    return new Promise((resolve, reject) => {
      this.ends.push({ resolve, reject });
      this.writer.write(part).catch(reject);
    });
  }

  async read(reader) {
    for (;;) {
      const { value, done } = await reader.read();
      if (done) return;
      const lines = (this.rest + this.decoder.decode(value, { stream: true })).split('\n');
      this.rest = lines.pop();
      for (const line of lines) {
        if (line) this.receive(JSON.parse(line), this.tape);
        else this.ends.shift()?.resolve();
      }
    }
  }
}

// The items that a tape holds.
export async function readTape(tape) {
  const items = [];
  const stream = new ItemStream((item) => items.push(item));
  for (const part of tape) await stream.push(part);
  return items;
}

// Call `receive(item, message, tape)` for every item; a tape is what a run came from, and can be played again.
// A chain of promises keeps the order, since values may arrive while earlier ones are being unpacked.
export function openInbox(context, receive, fail) {
  let chain = Promise.resolve();
  let stream = null;
  const seen = { run: null, n: -1 };

  function deliver(message) {
    if (!message?.run || (message.run === seen.run && message.n <= seen.n && !message.tape)) return;
    const isLost = message.n > 0 && (message.run !== seen.run || message.n !== seen.n + 1);
    Object.assign(seen, { run: message.run, n: message.n });
    chain = chain.then(() => (isLost ? Promise.reject(new Error(t('A part of this run did not arrive.'))) : handle(message)))
      .catch((error) => { console.error(error); fail(error.message); });
  }

  async function handle(message) {
    if (message.n === 0) stream = new ItemStream((item, tape) => receive(item, message, tape));
    for (const part of await partsOf(message)) await stream.push(part);
  }

  async function partsOf({ files, packed, tape }) {
    if (!files) return tape ?? [bytesOf(packed)];
    const file = files[language()];
    const response = await fetch(file.url ?? context.fileUrl(file.path));
    if (!response.ok) throw new Error(t('The recording could not be loaded ({status}).', { status: response.status }));
    return [new Uint8Array(await response.arrayBuffer())];
  }

  context.deliver = deliver;
  context.drained = () => chain;
}

export function bytesOf(packed) {
  return Uint8Array.from(atob(packed), (character) => character.charCodeAt(0));
}

// Undo base64 of zlib of JSON.
export async function unpack(packed) {
  const stream = new Blob([bytesOf(packed)]).stream().pipeThrough(new DecompressionStream('deflate'));
  return JSON.parse(new TextDecoder().decode(await new Response(stream).arrayBuffer()));
}
