import { startTestStack } from './stack.ts';

export default (): Promise<void> => startTestStack();
