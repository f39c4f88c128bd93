metadata description = 'Stage 2a: the database, the scheduler, the orchestrator and its subscriptions.'

@description('As in the shared stage.')
@minLength(3)
@maxLength(12)
param baseName string

@description('As in the shared stage.')
@allowed([
  'dev'
  'prod'
])
param environmentName string

param location string = resourceGroup().location

@description('Name of the group or person that administers the database, as Entra shows it.')
param sqlEntraAdminName string

@description('Object id of the same.')
param sqlEntraAdminObjectId string

@allowed([
  'Group'
  'User'
  'Application'
])
param sqlEntraAdminType string = 'Group'

@description('The workers there are. A topic drops what no filter lets through, so jobs go to these only.')
param workerIds array

@description('Settings of data sources that are secrets of the vault: setting name to secret name.')
param sourceSecrets object = {}

@description('Ids of the action groups that are told of alerts. None: they stand in the portal only.')
param actionGroupIds array = []

@description('Address ranges from which the apps are deployed. None: they cannot be.')
param allowedAddresses array = []

var prefix = '${baseName}-${environmentName}'
var serviceBusHost = '${serviceBus.name}.servicebus.windows.net'
var sqlConnectionString = 'Server=tcp:${sqlServer.properties.fullyQualifiedDomainName},1433;Database=${database.name};Authentication=Active Directory Managed Identity;Encrypt=yes;'

resource serviceBus 'Microsoft.ServiceBus/namespaces@2024-01-01' existing = {
  name: '${prefix}-sb'
}

resource vault 'Microsoft.KeyVault/vaults@2024-11-01' existing = {
  name: '${prefix}-kv'
}

resource workspace 'Microsoft.OperationalInsights/workspaces@2023-09-01' existing = {
  name: '${prefix}-logs'
}

resource network 'Microsoft.Network/virtualNetworks@2024-05-01' existing = {
  name: '${prefix}-vnet'
}

resource schedulerSubnet 'Microsoft.Network/virtualNetworks/subnets@2024-05-01' existing = {
  parent: network
  name: 'snet-scheduler'
}

resource orchestratorSubnet 'Microsoft.Network/virtualNetworks/subnets@2024-05-01' existing = {
  parent: network
  name: 'snet-orchestrator'
}

resource endpointSubnet 'Microsoft.Network/virtualNetworks/subnets@2024-05-01' existing = {
  parent: network
  name: 'snet-private-endpoints'
}

resource sqlServer 'Microsoft.Sql/servers@2023-08-01' = {
  name: '${prefix}-sql'
  location: location
  properties: {
    administrators: {
      administratorType: 'ActiveDirectory'
      azureADOnlyAuthentication: true
      login: sqlEntraAdminName
      principalType: sqlEntraAdminType
      sid: sqlEntraAdminObjectId
      tenantId: subscription().tenantId
    }
    minimalTlsVersion: '1.2'
    publicNetworkAccess: 'Disabled'
  }
}

resource database 'Microsoft.Sql/servers/databases@2023-08-01' = {
  // checkov:skip=CKV_AZURE_26: threat detection is a plan of the subscription
  // checkov:skip=CKV_AZURE_27: the same
  // checkov:skip=CKV_AZURE_229: a zone that fails delays a wave; backups are kept by the platform
  parent: sqlServer
  name: 'matoolkit'
  location: location
  sku: {
    name: 'GP_S_Gen5_1'
    tier: 'GeneralPurpose'
    family: 'Gen5'
    capacity: 1
  }
  properties: {
    autoPauseDelay: 60
    maxSizeBytes: 34359738368
    minCapacity: json('0.5')
  }
}

module sqlEndpoint '../../modules/private-endpoint.bicep' = {
  name: '${prefix}-pe-sql'
  params: {
    name: '${prefix}-pe-sql'
    location: location
    subnetId: endpointSubnet.id
    targetId: sqlServer.id
    groupId: 'sqlServer'
    zoneName: 'privatelink.database.windows.net'
  }
}

// No password is in it: who connects is known by the identity of the app.
resource connectionStrings 'Microsoft.KeyVault/vaults/secrets@2024-11-01' = [for part in [
  'scheduler'
  'orchestrator'
]: {
  // checkov:skip=CKV_AZURE_41: an address without a password does not grow old
  parent: vault
  name: '${part}-sql-connection-string'
  properties: {
    contentType: 'text/plain'
    value: sqlConnectionString
  }
}]

module orchestratorEvents '../../modules/subscription.bicep' = {
  name: '${prefix}-orchestrator-events'
  params: {
    serviceBusName: serviceBus.name
    topicName: 'orchestrator-events'
    name: 'orchestrator'
  }
}

module workerResults '../../modules/subscription.bicep' = {
  name: '${prefix}-worker-results'
  params: {
    serviceBusName: serviceBus.name
    topicName: 'worker-results'
    name: 'orchestrator'
  }
}

module scheduler '../../modules/function-app.bicep' = {
  name: '${prefix}-scheduler'
  dependsOn: [
    connectionStrings
  ]
  params: {
    name: '${prefix}-scheduler'
    location: location
    appSubnetId: schedulerSubnet.id
    endpointSubnetId: endpointSubnet.id
    workspaceId: workspace.id
    keyVaultName: vault.name
    serviceBusName: serviceBus.name
    serviceBusRoles: [
      'Service Bus Data Sender'
    ]
    allowedAddresses: allowedAddresses
    settings: [
      {
        name: 'MATOOLKIT_PARTS'
        value: 'scheduler'
      }
      {
        name: 'Scheduler__PollTick'
        value: '15s'
      }
      {
        name: 'Scheduler__ServiceBusNamespace'
        value: serviceBusHost
      }
      {
        name: 'Scheduler__OrchestratorTopicName'
        value: 'orchestrator-events'
      }
    ]
    secretSettings: union({
      Scheduler__SqlConnectionString: 'scheduler-sql-connection-string'
    }, sourceSecrets)
  }
}

module orchestrator '../../modules/function-app.bicep' = {
  name: '${prefix}-orchestrator'
  dependsOn: [
    connectionStrings
  ]
  params: {
    name: '${prefix}-orchestrator'
    location: location
    appSubnetId: orchestratorSubnet.id
    endpointSubnetId: endpointSubnet.id
    workspaceId: workspace.id
    keyVaultName: vault.name
    serviceBusName: serviceBus.name
    serviceBusRoles: [
      'Service Bus Data Sender'
      'Service Bus Data Receiver'
    ]
    allowedAddresses: allowedAddresses
    settings: [
      {
        name: 'MATOOLKIT_PARTS'
        value: 'orchestrator'
      }
      {
        name: 'Orchestrator__ServiceBusNamespace'
        value: serviceBusHost
      }
      {
        name: 'Orchestrator__OrchestratorEventsTopicName'
        value: 'orchestrator-events'
      }
      {
        name: 'Orchestrator__OrchestratorSubscriptionName'
        value: 'orchestrator'
      }
      {
        name: 'Orchestrator__WorkerJobsTopicName'
        value: 'worker-jobs'
      }
      {
        name: 'Orchestrator__WorkerResultsTopicName'
        value: 'worker-results'
      }
      {
        name: 'Orchestrator__WorkerResultsSubscriptionName'
        value: 'orchestrator'
      }
      {
        name: 'Orchestrator__WorkerIds'
        value: join(workerIds, ',')
      }
      {
        name: 'ServiceBusConnection__fullyQualifiedNamespace'
        value: serviceBusHost
      }
      {
        name: 'ServiceBusConnection__credential'
        value: 'managedidentity'
      }
    ]
    secretSettings: {
      Orchestrator__SqlConnectionString: 'orchestrator-sql-connection-string'
    }
  }
}

module alerts '../../modules/alerts.bicep' = {
  name: '${prefix}-alerts'
  params: {
    prefix: prefix
    location: location
    workspaceId: workspace.id
    actionGroupIds: actionGroupIds
  }
}

output sqlServerHost string = sqlServer.properties.fullyQualifiedDomainName
output databaseName string = database.name
