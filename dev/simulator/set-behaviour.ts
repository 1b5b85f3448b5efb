/**
 * Sets how the providers of a running simulator behave from now on; see its Behaviour.
 * @param url of the simulator, or of anything that it serves
 */
export async function setBehaviour(url: string, behaviour: object): Promise<void> {
  const response = await fetch(new URL('/simulator/behaviour', url), {
    method: 'PUT',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(behaviour),
  });
  if (!response.ok) throw new Error(`the simulator refuses the behaviour: ${await response.text()}`);
}
