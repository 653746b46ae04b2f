import { startSharedService } from './service.ts';

export default startSharedService;
