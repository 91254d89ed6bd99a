// Takes the stage's values and hands their items on, unpacked and in order.

const decoder = new TextDecoder();

// Unpack base64 of zlib of JSON.
export async function unpack(packed) {
  const bytes = Uint8Array.from(atob(packed), (character) => character.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream('deflate'));
  return JSON.parse(decoder.decode(await new Response(stream).arrayBuffer()));
}

// Call `receive(item, message)` for every item. A chain of promises keeps the order, since values may
// arrive while earlier ones are being unpacked.
export function openInbox(context, receive) {
  let chain = Promise.resolve();
  const seen = { run: null, n: -1 };

  function deliver(message) {
    if (!message?.run || (message.run === seen.run && message.n <= seen.n)) return;
    Object.assign(seen, { run: message.run, n: message.n });
    chain = chain.then(() => handle(message)).catch((error) => console.error(error));
  }

  async function handle(message) {
    const packed = message.file ? await fetchItems(message.file) : message.items;
    const items = await Promise.all(packed.map(unpack));
    for (const item of items) receive(item, message);
  }

  async function fetchItems(file) {
    const response = await fetch(file.url ?? context.fileUrl(file.path));
    if (!response.ok) throw new Error(`the recording could not be loaded (${response.status})`);
    return response.json();
  }

  context.deliver = deliver;
  context.drained = () => chain;
  deliver(context.props.value);
  context.early.forEach(deliver);
}
