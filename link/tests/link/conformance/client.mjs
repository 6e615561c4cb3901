// Logs in over WebSocket and does what standard input says, then prints what it saw as JSON.

let input = "";
for await (const piece of process.stdin) input += piece;
const task = JSON.parse(input);
const { default: WebSocket } = await import(task.ws);

const bytes = (hex) => Buffer.from(hex, "hex");
const socket = new WebSocket(task.url, { perMessageDeflate: true });
const seen = { extensions: null, pongs: [], frames: [], code: null };
let heard = () => {};

socket.on("message", (data, isBinary) => {
  if (!isBinary) throw new Error("the link sent text");
  seen.frames.push(data.toString("hex"));
  heard();
});
socket.on("pong", (data) => {
  // The last ping's content is told in hexadecimal.
  seen.pongs.push(data.length === 125 ? data.toString("hex") : data.toString());
  heard();
});

const until = (holds) =>
  new Promise((resolve) => {
    heard = () => holds() && resolve();
    heard();
  });
const frames = async (more, send) => {
  const expected = seen.frames.length + more;
  send();
  await until(() => seen.frames.length >= expected);
};

const acts = {
  async ping() {
    for (const content of [Buffer.alloc(0), Buffer.from("Hello"), Buffer.alloc(125, "*")]) {
      const expected = seen.pongs.length + 1;
      socket.ping(content);
      await until(() => seen.pongs.length >= expected);
    }
  },
  message: () => frames(1, () => socket.send(bytes(task.message))),
  pieces: () =>
    frames(1, () => {
      const content = bytes(task.pieces);
      for (let at = 0; at < content.length; at += 3) {
        socket.send(content.subarray(at, at + 3), { binary: true, fin: at + 3 >= content.length });
        socket.pong();
      }
    }),
  async sizes() {
    for (const size of task.sizes) await frames(1, () => socket.send(bytes(size)));
  },
  close: async () => socket.close(1000, "goodbye"),
  text: async () => socket.send("text"),
};

socket.on("open", async () => {
  seen.extensions = socket.extensions;
  await frames(2, () => task.login.forEach((it) => socket.send(bytes(it))));
  for (const act of task.acts) await acts[act]();
});
socket.on("close", (code) => {
  seen.code = code;
  console.log(JSON.stringify(seen));
});
