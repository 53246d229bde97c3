/** Starts `shapefix server`, and shows its state in the status bar. The server does everything else. */

import { execFile } from "node:child_process";
import { promisify } from "node:util";
import * as vscode from "vscode";
import { LanguageClient, LanguageClientOptions, State } from "vscode-languageclient/node";

const run = promisify(execFile);
const SECTION = "shapefix";
const PYTHON_EXTENSION = "ms-python.python";

/** A program with its first arguments. */
type Command = readonly [program: string, ...args: string[]];

/** The part of the Python extension's interface that is used here. */
interface PythonExtension {
  environments: {
    getActiveEnvironmentPath(resource?: vscode.Uri): { path: string };
    resolveEnvironment(path: { path: string }): Promise<{ executable: { uri?: vscode.Uri } } | undefined>;
    onDidChangeActiveEnvironmentPath: vscode.Event<unknown>;
  };
}

let client: LanguageClient | undefined;
let starting: Promise<void> = Promise.resolve();

export async function activate(context: vscode.ExtensionContext): Promise<void> {
  const log = vscode.window.createOutputChannel(SECTION, { log: true });
  const status = vscode.window.createStatusBarItem("shapefix", vscode.StatusBarAlignment.Left);
  status.name = SECTION;
  status.command = "shapefix.showLog";
  const restart = (): Promise<void> => {
    starting = starting.then(() => startAgain(log, status));
    return starting;
  };
  context.subscriptions.push(
    log,
    status,
    vscode.commands.registerCommand("shapefix.restart", restart),
    vscode.commands.registerCommand("shapefix.showLog", () => log.show()),
    vscode.workspace.onDidChangeConfiguration((event) =>
      event.affectsConfiguration("shapefix.path") ? restart() : undefined,
    ),
  );
  const python = await pythonExtension(log);
  if (python !== undefined) {
    context.subscriptions.push(python.environments.onDidChangeActiveEnvironmentPath(restart));
  }
  await restart();
}

export async function deactivate(): Promise<void> {
  await starting;
  await client?.stop();
}

/** Start the server, after the end of the last one. */
async function startAgain(log: vscode.LogOutputChannel, status: vscode.StatusBarItem): Promise<void> {
  await client?.stop().catch((error: unknown) => log.warn(String(error)));
  client = undefined;
  const command = await findCommand(log);
  if (command === undefined) {
    show(status, "$(warning) shapefix", "shapefix is not installed: pip install 'shapefix[editor]'");
    return;
  }
  const [program, ...args] = command;
  log.info(`starting ${[...command, "server"].join(" ")}`);
  const settings = vscode.workspace.getConfiguration(SECTION);
  const options: LanguageClientOptions = {
    documentSelector: [
      { scheme: "file", language: "python" },
      { scheme: "untitled", language: "python" },
      { notebook: "jupyter-notebook", language: "python" },
    ],
    outputChannel: log,
    synchronize: { configurationSection: SECTION },
    initializationOptions: {
      preview: settings.get("preview"),
      inlayHints: settings.get("inlayHints"),
      inlayHintDtypes: settings.get("inlayHintDtypes"),
    },
  };
  client = new LanguageClient(SECTION, SECTION, { command: program, args: [...args, "server"] }, options);
  client.onDidChangeState(({ newState }) => {
    const icon = { [State.Running]: "check", [State.Starting]: "sync~spin", [State.Stopped]: "error" }[newState];
    show(status, `$(${icon}) shapefix`, [...command, "server"].join(" "));
  });
  try {
    await client.start();
  } catch (error) {
    log.error(String(error));
    show(status, "$(error) shapefix", String(error));
  }
}

function show(status: vscode.StatusBarItem, text: string, tooltip: string): void {
  status.text = text;
  status.tooltip = tooltip;
  status.show();
}

/** The program of the settings, the shapefix of the project's interpreter, or the one on the PATH. */
async function findCommand(log: vscode.LogOutputChannel): Promise<Command | undefined> {
  const path = vscode.workspace.getConfiguration(SECTION).get<string>("path", "").trim();
  const candidates: Command[] = [];
  if (path !== "") {
    candidates.push([path]);
  } else {
    const interpreter = await activeInterpreter(log);
    if (interpreter !== undefined) {
      candidates.push([interpreter, "-m", "shapefix"]);
    }
    candidates.push(["shapefix"]);
  }
  for (const command of candidates) {
    const [program, ...args] = command;
    try {
      const { stdout } = await run(program, [...args, "--version"], { timeout: 20_000 });
      log.info(`${command.join(" ")}: ${stdout.trim()}`);
      return command;
    } catch (error) {
      log.info(`${command.join(" ")} cannot be used: ${error instanceof Error ? error.message : String(error)}`);
    }
  }
  return undefined;
}

async function pythonExtension(log: vscode.LogOutputChannel): Promise<PythonExtension | undefined> {
  const extension = vscode.extensions.getExtension<PythonExtension>(PYTHON_EXTENSION);
  try {
    return await extension?.activate();
  } catch (error) {
    log.warn(`the Python extension cannot be used: ${String(error)}`);
    return undefined;
  }
}

async function activeInterpreter(log: vscode.LogOutputChannel): Promise<string | undefined> {
  const python = await pythonExtension(log);
  if (python === undefined) {
    return undefined;
  }
  const folder = vscode.workspace.workspaceFolders?.[0]?.uri;
  const active = python.environments.getActiveEnvironmentPath(folder);
  return (await python.environments.resolveEnvironment(active))?.executable.uri?.fsPath;
}
