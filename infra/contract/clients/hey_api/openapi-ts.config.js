export default {
  input: "description.json",
  output: { path: "node/hey_api/generated", module: { extension: ".js" } },
  plugins: ["@hey-api/client-fetch", "@hey-api/typescript", "@hey-api/sdk"],
  logs: { file: false },
};
